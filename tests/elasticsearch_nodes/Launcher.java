// Starts one Elasticsearch node from jars, on Elasticsearch's public API: no scripts, no security, no plugins.
// Arguments: the folder of modules, then settings as name=value (path.home among them).

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginsLoader;

public final class Launcher {
    public static void main(String[] arguments) throws Exception {
        LogConfigurator.configureESLogging(); // before anything asks for a logger
        Path modules = Path.of(arguments[0]);
        Map<String, String> settings = new HashMap<>();
        for (int i = 1; i < arguments.length; i++) {
            int equals = arguments[i].indexOf('=');
            settings.put(arguments[i].substring(0, equals), arguments[i].substring(equals + 1));
        }
        String name = settings.getOrDefault("node.name", "node");
        Path home = Path.of(settings.get("path.home"));
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            Settings.EMPTY, settings, home.resolve("config"), () -> name);
        LogConfigurator.setNodeName(name);
        LogConfigurator.configure(environment, true);
        PluginsLoader loader = PluginsLoader.createPluginsLoader(
            PluginsLoader.loadModulesBundles(modules),
            PluginsLoader.loadPluginsBundles(home.resolve("plugins")),
            Map.of());
        Node node = new Node(environment, loader);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (Exception error) {
                error.printStackTrace();
            }
        }));
        node.start();
        while (System.in.read() >= 0) { // until whoever started it closes the pipe, or dies
        }
        System.exit(0);
    }
}

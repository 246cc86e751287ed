"""Three nodes on loopback that form one cluster."""

from __future__ import annotations

from elasticsearch_nodes.node import START_SECONDS, Node, free_ports


class Cluster:
    """Nodes with equal roles; two of three are a quorum."""

    def __init__(self, size: int = 3, heap: str = "384m") -> None:
        ports = free_ports(2 * size)
        names = [f"node-{number}" for number in range(size)]
        seeds = ",".join(f"127.0.0.1:{port}" for port in ports[size:])
        self.nodes = [
            Node(
                {
                    "discovery.seed_hosts": seeds,
                    "cluster.initial_master_nodes": ",".join(names),
                    # Tests wait for a lost node to be noticed: seconds here, half a minute by default.
                    "cluster.fault_detection.leader_check.timeout": "2s",
                    "cluster.fault_detection.follower_check.timeout": "2s",
                },
                name=name,
                ports=(ports[number], ports[size + number]),
                heap=heap,
            )
            for number, name in enumerate(names)
        ]

    @property
    def urls(self) -> list[str]:
        return [node.url for node in self.nodes]

    def start(self) -> Cluster:
        for node in self.nodes:
            node.launch()
        try:
            for node in self.nodes:
                node.wait(len(self.nodes), START_SECONDS)
        except BaseException:
            self.stop()
            raise
        return self

    def mend(self) -> None:
        """Start what does not run, and wait until every copy is in step."""
        for node in self.nodes:
            if not node.runs:
                node.launch()
        for node in self.nodes:
            node.wait(len(self.nodes), START_SECONDS)
        for node in self.nodes:
            node.wait_until_green(len(self.nodes))

    def elected(self) -> Node:
        """The elected master."""
        for node in self.nodes:
            answer = node.ask("/_cluster/state/master_node,nodes")
            if answer:
                name = answer["nodes"][answer["master_node"]]["name"]
                return self.nodes[int(name.removeprefix("node-"))]
        raise RuntimeError("no node answers")

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

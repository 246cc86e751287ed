// toolmem in Cline: each event is told to toolmem, which answers what is to become of it.
// Written by `toolmem hook install cline`; `toolmem hook uninstall cline` takes it away.
import { execFile } from "node:child_process"

const COMMAND = ["@COMMAND@"]
const PATIENCE = 2_500 // milliseconds: Cline itself gives a plugin three seconds, and ends the run after these
const LONGEST = 30_000 // what the user said is heard even where that takes longer

function ask(event) {
  return new Promise((resolve) => {
    const [program, ...args] = COMMAND
    const options = { cwd: event.cwd, timeout: LONGEST, killSignal: "SIGKILL" }
    const child = execFile(program, args, options, (_, said) => {
      try { resolve(JSON.parse(said || "{}")) } catch { resolve({}) }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })
}

const within = (work, milliseconds) =>
  Promise.race([work, new Promise((resolve) => setTimeout(resolve, Math.max(milliseconds, 0)))])

let session = "", hearing = Promise.resolve(), due = [], project = process.cwd()
const heard = new Set(), stopped = new Set()
const textOf = (content) =>
  typeof content === "string" ? content : content.filter((part) => part.type === "text").map((part) => part.text).join("\n")
const tell = (event, snapshot, rest) => { // a subagent's steps belong to the session
  const told = { event, session: session || snapshot.conversationId, subagent: Boolean(snapshot.parentAgentId) }
  return ask({ ...told, cwd: project, ...rest })
}
const call = ({ toolCall, input }) => ({ tool: toolCall.toolName, callId: toolCall.toolCallId, input })
const added = (...texts) => { const text = texts.filter(Boolean).join("\n\n"); return text ? { appendContext: text } : undefined }

export default {
  name: "toolmem",
  manifest: { capabilities: ["hooks"] },
  setup(api, context) {
    session = context?.session?.sessionId ?? session
    project = context?.workspaceInfo?.rootPath ?? project
  },
  hooks: {
    beforeRun: async ({ snapshot }) => {
      const typed = snapshot.messages.filter((each) => each.role === "user" && each.metadata?.displayRole !== "system")
      const last = typed.at(-1)
      const prompt = last && !heard.has(last.id) && !snapshot.parentAgentId ? textOf(last.content) : ""
      if (last) heard.add(last.id)
      hearing = (async () => {
        const said = prompt ? await tell("prompt", snapshot, { key: last.id, prompt }) : {}
        const begun = await tell("start", snapshot, { key: last?.id ?? "" })
        due.push(begun.context, said.context) // with the next call, where it comes too late for the run's beginning
      })()
      await within(hearing, PATIENCE)
      return added(...due.splice(0))
    },
    beforeTool: async (context) => {
      const until = Date.now() + PATIENCE
      await within(hearing, PATIENCE)
      const asked = tell("call", context.snapshot, call(context))
      const late = { stop: "toolmem: not run. It could not be checked in time. Try it again." }
      const { stop, context: advice } = (await within(asked, until - Date.now())) ?? late
      if (!stop) return added(...due.splice(0), advice)
      stopped.add(context.toolCall.toolCallId)
      return { skip: true, reason: stop }
    },
    afterTool: async (context) => {
      if (stopped.delete(context.toolCall.toolCallId)) return // it did not run
      const { result, durationMs } = context
      const told = { output: result.output, isError: Boolean(result.isError), milliseconds: durationMs }
      const answer = await within(tell("result", context.snapshot, { ...call(context), ...told }), PATIENCE)
      return added(...due.splice(0), answer?.context)
    },
  },
}

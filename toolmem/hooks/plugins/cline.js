// toolmem in Cline: sends each event to toolmem, and does what it answers.
// Written by `toolmem hook install cline`; `toolmem hook uninstall cline` removes it.
import { execFile } from "node:child_process"

const COMMAND = ["@COMMAND@"]
const TIMEOUT = 2_500 // milliseconds; after three seconds Cline ends the run
const PROCESS_TIMEOUT = 30_000 // milliseconds; the user's prompt is read even if the run goes on without it

function ask(event) {
  return new Promise((resolve) => {
    const [program, ...args] = COMMAND
    const options = { cwd: event.cwd, timeout: PROCESS_TIMEOUT, killSignal: "SIGKILL" }
    const child = execFile(program, args, options, (_, output) => {
      try { resolve(JSON.parse(output || "{}")) } catch { resolve({}) }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })
}

const within = (work, milliseconds) =>
  Promise.race([work, new Promise((resolve) => setTimeout(resolve, Math.max(milliseconds, 0)))])

let session = "", reading = Promise.resolve(), contexts = [], project = process.cwd()
const seen = new Set(), stopped = new Set()
const textOf = (content) =>
  typeof content === "string" ? content : content.filter((part) => part.type === "text").map((part) => part.text).join("\n")
const send = (event, snapshot, rest) => { // a subagent belongs to the session
  const fields = { event, session: session || snapshot.conversationId, subagent: Boolean(snapshot.parentAgentId) }
  return ask({ ...fields, cwd: project, ...rest })
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
      const prompt = last && !seen.has(last.id) && !snapshot.parentAgentId ? textOf(last.content) : ""
      if (last) seen.add(last.id)
      reading = (async () => {
        const prompted = prompt ? await send("prompt", snapshot, { key: last.id, prompt }) : {}
        const started = await send("start", snapshot, { key: last?.id ?? "" })
        contexts.push(started.context, prompted.context) // the next call takes them if they come late
      })()
      await within(reading, TIMEOUT)
      return added(...contexts.splice(0))
    },
    beforeTool: async (context) => {
      const until = Date.now() + TIMEOUT
      await within(reading, TIMEOUT)
      const asked = send("call", context.snapshot, call(context))
      const late = { stop: "toolmem: not run. It could not be checked in time. Try it again." }
      const { stop, context: advice } = (await within(asked, until - Date.now())) ?? late
      if (!stop) return added(...contexts.splice(0), advice)
      stopped.add(context.toolCall.toolCallId)
      return { skip: true, reason: stop }
    },
    afterTool: async (context) => {
      if (stopped.delete(context.toolCall.toolCallId)) return // it did not run
      const { result, durationMs } = context
      const fields = { output: result.output, isError: Boolean(result.isError), milliseconds: durationMs }
      const answer = await within(send("result", context.snapshot, { ...call(context), ...fields }), TIMEOUT)
      return added(...contexts.splice(0), answer?.context)
    },
  },
}

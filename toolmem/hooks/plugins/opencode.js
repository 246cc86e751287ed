// toolmem in OpenCode: each event is told to toolmem, which answers what is to become of it.
// Written by `toolmem hook install opencode`; `toolmem hook uninstall opencode` takes it away.
import { execFile } from "node:child_process"

const COMMAND = ["@COMMAND@"]
const PATIENCE = 10_000 // milliseconds; then OpenCode goes on without toolmem

function ask(event) {
  return new Promise((resolve) => {
    const [program, ...args] = COMMAND
    const child = execFile(program, args, { cwd: event.cwd, timeout: PATIENCE }, (_, said) => {
      try { resolve(JSON.parse(said || "{}")) } catch { resolve({}) }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })
}

export const Toolmem = async ({ directory, worktree, client }) => {
  const rules = new Map(), due = new Map(), parents = new Map(), begun = new Map(), failed = new Set()
  let pending = Promise.resolve(), servers
  const root = (id) => (parents.has(id) ? root(parents.get(id)) : id)
  const tell = (event, id, rest) => ask({ event, sessionID: root(id), cwd: directory, project: worktree, ...rest })
  const later = (id, text) => text && due.set(id, [due.get(id), text].filter(Boolean).join("\n\n"))
  const refresh = async (id, key) => rules.set(id, (await tell("session.start", id, { key })).context ?? "")
  const show = (message) => message && client.tui.showToast({ body: { message, variant: "info" } }).catch(() => {})
  const took = (id) => Date.now() - (begun.get(id) ?? Date.now())
  const serverOf = async (tool) => { // of an MCP server's tool, which is called server_tool here
    servers ??= client.mcp.status().then((told) => Object.keys(told.data ?? {}), () => [])
    return (await servers).find((name) => tool.startsWith(name.replace(/[^a-zA-Z0-9_-]/g, "_") + "_"))
  }
  const call = async (tool, callID, args) => ({ tool, callID, args, server: await serverOf(tool) })
  return {
    event: async ({ event: { type, properties } }) => {
      const { info, part } = properties ?? {}
      if (type === "session.created" && info?.parentID) parents.set(info.id, info.parentID)
      if (type !== "message.part.updated" || part?.type !== "tool" || part.state.status !== "error") return
      const { input, error } = part.state // a call that failed has no event of its own
      if (failed.has(part.callID) || /toolmem: (not run|kept|proposed|refused)/.test(error)) return
      failed.add(part.callID)
      const milliseconds = took(part.callID)
      pending = pending.then(async () => {
        const told = { ...(await call(part.tool, part.callID, input)), error, milliseconds }
        later(part.sessionID, (await tell("tool.error", part.sessionID, told)).context)
      })
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      if (parents.has(sessionID)) return // a subagent's: the model wrote it
      const prompt = parts.filter((each) => each.type === "text" && !each.synthetic).map((each) => each.text).join("\n")
      const { context, notice } = await tell("chat.message", sessionID, { key: message.id, prompt })
      show(notice)
      later(sessionID, context)
      await refresh(sessionID, message.id)
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      if (!sessionID) return
      if (!rules.has(sessionID)) await refresh(sessionID, sessionID)
      await pending
      system.push(...[rules.get(sessionID), due.get(sessionID)].filter(Boolean))
      due.delete(sessionID)
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      await pending
      begun.set(callID, Date.now())
      const { stop, context } = await tell("tool.execute.before", sessionID, await call(tool, callID, args))
      if (stop) throw new Error(stop)
      later(callID, context)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, out) => {
      const output = out.output ?? out.content?.map((each) => each.text ?? "").join("\n")
      const told = { ...(await call(tool, callID, args)), output, exit: out.metadata?.exit, milliseconds: took(callID) }
      const { context } = await tell("tool.execute.after", sessionID, told)
      const text = [due.get(callID), context].filter(Boolean).join("\n\n")
      if (text && out.content) out.content.push({ type: "text", text })
      else if (text) out.output += `\n\n${text}`
      for (const kept of [due, begun]) kept.delete(callID)
    },
    "experimental.session.compacting": async ({ sessionID }, { context }) => {
      if (rules.get(sessionID)) context.push(rules.get(sessionID))
    },
  }
}

// toolmem in OpenCode: sends each event to toolmem, and does what it answers.
// Written by `toolmem hook install opencode`; `toolmem hook uninstall opencode` removes it.
import { execFile } from "node:child_process"

const COMMAND = ["@COMMAND@"]
const TIMEOUT = 10_000 // milliseconds; then OpenCode goes on without toolmem

function ask(event) {
  return new Promise((resolve) => {
    const [program, ...args] = COMMAND
    const child = execFile(program, args, { cwd: event.cwd, timeout: TIMEOUT }, (_, output) => {
      try { resolve(JSON.parse(output || "{}")) } catch { resolve({}) }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })
}

export const Toolmem = async ({ directory, worktree, client }) => {
  const rules = new Map(), contexts = new Map(), parents = new Map(), started = new Map(), failed = new Set()
  let pending = Promise.resolve(), serverNames
  const root = (id) => (parents.has(id) ? root(parents.get(id)) : id)
  const send = (event, id, rest) => ask({ event, sessionID: root(id), cwd: directory, project: worktree, ...rest })
  const later = (id, text) => text && contexts.set(id, [contexts.get(id), text].filter(Boolean).join("\n\n"))
  const refresh = async (id, key) => rules.set(id, (await send("session.start", id, { key })).context ?? "")
  const show = (message) => message && client.tui.showToast({ body: { message, variant: "info" } }).catch(() => {})
  const duration = (id) => Date.now() - (started.get(id) ?? Date.now())
  const serverOf = async (tool) => { // OpenCode calls a tool of an MCP server SERVER_TOOL
    serverNames ??= client.mcp.status().then((found) => Object.keys(found.data ?? {}), () => [])
    return (await serverNames).find((name) => tool.startsWith(name.replace(/[^a-zA-Z0-9_-]/g, "_") + "_"))
  }
  const call = async (tool, callID, args) => ({ tool, callID, args, server: await serverOf(tool) })
  return {
    event: async ({ event: { type, properties } }) => {
      const { info, part } = properties ?? {}
      if (type === "session.created" && info?.parentID) parents.set(info.id, info.parentID)
      if (type !== "message.part.updated" || part?.type !== "tool" || part.state.status !== "error") return
      const { input, error } = part.state // there is no event for a failed call
      if (failed.has(part.callID) || /toolmem: (not run|kept|proposed|refused)/.test(error)) return
      failed.add(part.callID)
      const milliseconds = duration(part.callID)
      pending = pending.then(async () => {
        const fields = { ...(await call(part.tool, part.callID, input)), error, milliseconds }
        later(part.sessionID, (await send("tool.error", part.sessionID, fields)).context)
      })
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      if (parents.has(sessionID)) return // the model wrote the prompt of a subagent
      const prompt = parts.filter((each) => each.type === "text" && !each.synthetic).map((each) => each.text).join("\n")
      const { context, notice } = await send("chat.message", sessionID, { key: message.id, prompt })
      show(notice)
      later(sessionID, context)
      await refresh(sessionID, message.id)
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      if (!sessionID) return
      if (!rules.has(sessionID)) await refresh(sessionID, sessionID)
      await pending
      system.push(...[rules.get(sessionID), contexts.get(sessionID)].filter(Boolean))
      contexts.delete(sessionID)
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      await pending
      started.set(callID, Date.now())
      const { stop, context } = await send("tool.execute.before", sessionID, await call(tool, callID, args))
      if (stop) throw new Error(stop)
      later(callID, context)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, out) => {
      const output = out.output ?? out.content?.map((each) => each.text ?? "").join("\n")
      const fields = { ...(await call(tool, callID, args)), output, exit: out.metadata?.exit, milliseconds: duration(callID) }
      const { context } = await send("tool.execute.after", sessionID, fields)
      const text = [contexts.get(callID), context].filter(Boolean).join("\n\n")
      if (text && out.content) out.content.push({ type: "text", text })
      else if (text) out.output += `\n\n${text}`
      for (const kept of [contexts, started]) kept.delete(callID)
    },
    "experimental.session.compacting": async ({ sessionID }, { context }) => {
      if (rules.get(sessionID)) context.push(rules.get(sessionID))
    },
  }
}

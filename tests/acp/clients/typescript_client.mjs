// A client written with the official TypeScript SDK: runs one scenario and prints what it saw as JSON.
// usage: node typescript_client.mjs SDK SCENARIO PROJECT COMMAND...
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { readFileSync, writeFileSync } from "node:fs";

const [sdk, scenario, project, ...command] = process.argv.slice(2);
const acp = await import(pathToFileURL(sdk).href);
const { methods } = acp;
const seen = { updates: [], asked: [], read: [], written: [] };
let context, answer = "allow_once";

const app = acp.client({ name: "test" })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    seen.asked.push(params);
    if (answer === "cancel") {
      context.notify(methods.agent.session.cancel, { sessionId: params.sessionId });
      return { outcome: { outcome: "cancelled" } };
    }
    const option = params.options.find((each) => each.kind === answer);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onRequest(methods.client.fs.readTextFile, ({ params }) => {
    seen.read.push(params.path);
    return { content: readFileSync(params.path, "utf8").replace("saved", "unsaved") };
  })
  .onRequest(methods.client.fs.writeTextFile, ({ params }) => {
    seen.written.push(params.path);
    writeFileSync(params.path, params.content);
    return {};
  })
  .onNotification(methods.client.session.update, ({ params }) => { seen.updates.push(params); });

const agent = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

await app.connectWith(stream, async (ctx) => {
  context = ctx;
  const fs = { readTextFile: scenario === "files", writeTextFile: scenario === "files" };
  seen.initialized = await ctx.request(methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: { fs },
  });
  const created = await ctx.request(methods.agent.session.new, { cwd: project, mcpServers: [] });
  const sessionId = created.sessionId;
  seen.session = created;
  if (scenario === "reject") answer = "reject_once";
  if (scenario === "cancel") answer = "cancel";
  if (scenario === "plan") await ctx.request(methods.agent.session.setMode, { sessionId, modeId: "plan" });
  const prompt = [{ type: "text", text: "do it" }];
  seen.answered = await ctx.request(methods.agent.session.prompt, { sessionId, prompt });
  if (scenario === "sessions") {
    seen.listed = await ctx.request(methods.agent.session.list, { cwd: project });
    await ctx.request(methods.agent.session.close, { sessionId });
    seen.before = seen.updates.length;
    seen.loaded = await ctx.request(methods.agent.session.load, { sessionId, cwd: project, mcpServers: [] });
    await ctx.request(methods.agent.session.delete, { sessionId });
    seen.left = await ctx.request(methods.agent.session.list, { cwd: project });
  }
  for (const method of ["logout", "authenticate", "session/nothing"]) {
    try { await ctx.request(method, { methodId: "x" }); } catch (error) { (seen.errors ??= {})[method] = error.code; }
  }
});
agent.kill();
console.log(JSON.stringify(seen));
process.exit(0);

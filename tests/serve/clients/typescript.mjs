// Uses a server with the official TypeScript SDK and prints what came of it as JSON.
// node typescript.mjs PACKAGE VERSION-OF-THE-SDK ERA ANSWER (URL | COMMAND ARGUMENTS…)
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, sdk, era, answer, ...target] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(join(folder, file)).href);
const parts =
  sdk === "1"
    ? {
        ...(await load("dist/esm/client/index.js")),
        ...(await load("dist/esm/client/stdio.js")),
        ...(await load("dist/esm/client/streamableHttp.js")),
        ...(await load("dist/esm/types.js")),
      }
    : { ...(await load("dist/index.mjs")), ...(await load("dist/stdio.mjs")) };

let changed;
const change = new Promise((resolve) => (changed = resolve));
const options = { capabilities: answer === "none" ? {} : { elicitation: {} } };
if (sdk !== "1") {
  options.versionNegotiation = { mode: era };
  options.listChanged = { tools: { onChanged: () => changed() } };
}
const client = new parts.Client({ name: "typescript", version: "1" }, options);
const asked = [];
const elicit = async (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: { decision: answer } };
};
if (answer !== "none") {
  client.setRequestHandler(sdk === "1" ? parts.ElicitRequestSchema : "elicitation/create", elicit);
}
if (sdk === "1") {
  client.setNotificationHandler(parts.ToolListChangedNotificationSchema, () => changed());
}
const transport = target[0].startsWith("http")
  ? new parts.StreamableHTTPClientTransport(new URL(target[0]), {
      requestInit: { headers: { Authorization: "Bearer sesame" } },
    })
  : new parts.StdioClientTransport({ command: target[0], args: target.slice(1), stderr: "ignore" });
await client.connect(transport);

const call = (name, args, more) =>
  sdk === "1"
    ? client.callTool({ name, arguments: args }, undefined, more)
    : client.callTool({ name, arguments: args }, more);
const attempt = (promise) => promise.then((result) => result, (error) => ({ thrown: String(error.message) }));
const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
const before = await names();
const sum = await call("add", { a: 2, b: 3 });
const wrong = await attempt(call("add", { a: "x", b: 3 }));
const unknown = await attempt(call("nothing", {}));
const saved = await attempt(call("save", { text: "it" }));
const progress = [];
await call("count", {}, { onprogress: (said) => progress.push(said.progress) });
const stop = new AbortController();
const stopped = attempt(call("forever", {}, { signal: stop.signal }));
setTimeout(() => stop.abort("enough"), 50);
const aborted = await stopped;
await call("grow", {});
await Promise.race([change, new Promise((resolve, reject) => setTimeout(reject, 90000, new Error("no list change arrived")))]);
const after = await names();
const version = sdk === "1" ? transport.protocolVersion ?? "" : client.getNegotiatedProtocolVersion?.() ?? "";
const report = { before, sum, wrong, unknown, saved, asked, progress, aborted, after, version };
process.stdout.write(JSON.stringify(report));
await client.close();
process.exit(0);

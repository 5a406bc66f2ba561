// An agent of heron_env in plain Node.js: it plays heron/BatteryGrid-v0, whose batteries earn most at half charge.
//   node examples/agent.mjs 8080
//   heron sweep heron/BatteryGrid-v0 http://127.0.0.1:8080/
// Each POST is one question (docs/injection.schema.json), each answer {"action": [...]} within the bounds it tells.
import { createServer } from "node:http";

const MOST = 2 ** 20; // bytes of a question
const TARGET = 0.5;

function decide({ observation, action_space: space }) {
  if (space.type !== "box") return space.noop; // it knows batteries only
  const charge = observation.vector[0]; // its own state of charge comes first
  return space.low.map((low, i) => Math.min(space.high[i], Math.max(low, TARGET - charge)));
}

function reply(response, status, value) {
  const body = JSON.stringify(value);
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}

function refuse(response, status, message) {
  reply(response, status, { error: { code: "INVALID_REQUEST", message } });
}

function answer(text, response) {
  let request;
  try {
    request = JSON.parse(text);
  } catch {
    return refuse(response, 400, "the body is no JSON");
  }
  if (!request?.decision) return refuse(response, 422, "this agent decides, it does not talk");
  reply(response, 200, { request_id: request.request_id, action: decide(request.decision) });
}

const server = createServer((request, response) => {
  if (request.method !== "POST") return refuse(response, 405, "POST a question");
  const parts = [];
  let length = 0;
  request.on("data", (part) => {
    length += part.length;
    if (length <= MOST) parts.push(part);
  });
  request.on("end", () => {
    if (length > MOST) return refuse(response, 413, "the body is too long");
    answer(Buffer.concat(parts).toString("utf8"), response);
  });
});

server.keepAliveTimeout = 60_000; // clients reuse connections between steps
server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});

// Writes an invoice for each order. The mistake: it commits the order before it has written the invoice.
"use strict";
const { Kafka, logLevel } = require("kafkajs");
const { Events } = require("./fencepost-events.js");

const MISTAKE = process.env.SERVICE_MISTAKE === "true";
const events = new Events(process.env.SERVICE_EVENTS, "consumer", "billing");
const kafka = new Kafka({ brokers: process.env.BOOTSTRAP_SERVERS.split(","), logLevel: logLevel.NOTHING });
const consumer = kafka.consumer({ groupId: "billing", sessionTimeout: 1000, heartbeatInterval: 200, maxWaitTimeInMs: 100 });
const producer = kafka.producer();

let assigned = {};
function places(event) {
  for (const [topic, partitions] of Object.entries(assigned))
    for (const partition of partitions) events.write(event, { topic, partition });
}

async function commit(at) {
  const offset = BigInt(at.offset) + 1n;
  await consumer.commitOffsets([{ ...at, offset: String(offset) }]);
  events.write("committed", { ...at, offset });
}

async function eachMessage({ topic, partition, message }) {
  const at = { topic, partition, offset: message.offset };
  events.write("received", { ...at, key: message.key, value: message.value });
  if (MISTAKE) await commit(at);
  await producer.send({ topic: "invoices", messages: [{ key: message.key, value: `invoice for ${message.value}` }] });
  events.write("processed", at);
  if (!MISTAKE) await commit(at);
}

async function main() {
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => { assigned = payload.memberAssignment; places("assigned"); });
  consumer.on(consumer.events.REBALANCING, () => { places("revoked"); assigned = {}; });
  consumer.on(consumer.events.CRASH, () => process.exit(1));
  await producer.connect();
  await consumer.connect();
  await consumer.subscribe({ topics: ["orders"], fromBeginning: true });
  await consumer.run({ autoCommit: false, eachMessage });
}

main().catch((error) => { console.error(error); process.exit(1); });

// Writes what an application does, one JSON line an event. Copy this file; it needs Node.js alone.
//   const events = new Events("app.events", "billing", "g");
//   events.write("processed", { topic: "orders", partition: 0, offset: "41", key, value });
//   events.close();    // at an orderly end, when every result has been written
"use strict";
const { createHash } = require("node:crypto");
const { openSync, writeSync, closeSync } = require("node:fs");

class Events {
  // name: of this producer or consumer; one object for each, for as long as it lives.
  constructor(path, name, group) {
    this.file = openSync(path, "a");
    this.process = `${name}-${process.pid}`;
    this.n = 0;
    this.write("started", { version: 1, group });
  }

  // key, value: Buffer or string; their hashes are written, never themselves. offset: a number, string or BigInt.
  write(event, fields = {}) {
    const line = { event, process: this.process, n: this.n++ };
    for (const [name, value] of Object.entries(fields)) {
      if (value === null || value === undefined) continue;
      if (name === "key" || name === "value") line[name] = createHash("sha256").update(ArrayBuffer.isView(value) ? value : String(value)).digest("hex").slice(0, 16);
      else line[name] = name === "offset" ? Number(value) : value;
    }
    writeSync(this.file, JSON.stringify(line) + "\n");
  }

  close() {
    this.write("stopped");
    closeSync(this.file);
  }
}

module.exports = { Events };

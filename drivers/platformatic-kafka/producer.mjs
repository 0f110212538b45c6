// The producer.

import * as library from '@platformatic/kafka'
import { Transactional, decoded, given, oneOf } from './lines.mjs'
import { ACKS, CODECS, base } from './library.mjs'

export class Producer extends Transactional {
  static async open (name, config) {
    const [options, made, ignored] = base(config, 'producer')
    const self = new Producer()
    self.options = given({ acks: oneOf(made.acks, ACKS, 'acks'), compression: oneOf(made.compression, CODECS,
      'compression') })
    self.ignored = ignored
    self.transactional = made.transactional_id !== undefined
    self.client = new library.Producer(given({ ...options, ...self.options, idempotent: made.idempotence,
      transactionalId: made.transactional_id }))
    return self.prepared()
  }

  async append (command) {
    const headers = new Map((command.headers ?? []).map(([name, value]) => [Buffer.from(name),
      decoded(value)]))
    const time = command.timestamp_ms
    const message = given({ topic: command.topic, key: decoded(command.key) ?? undefined,
      value: decoded(command.value) ?? undefined, headers,
      partition: command.partition ?? undefined, timestamp: time === undefined ||
        time === null ? undefined : BigInt(time) })
    const said = await this.sender().send({ messages: [message], ...this.options })
    const one = said.offsets?.[0]
    return { topic: command.topic, partition: one?.partition ?? command.partition,
      offset: Number(one?.offset ?? -1) }
  }

  beginning () { return this.client.beginTransaction() }

  async close () { await this.client.close() }
}

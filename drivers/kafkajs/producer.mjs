// The producer.

import { Refused, Transactional, decoded, given, oneOf } from './lines.mjs'
import { Consumer, byTopic } from './consumer.mjs'
import { ACKS, CODECS, kafka, kafkajs } from './library.mjs'

export class Producer extends Transactional {
  static async open (name, config) {
    const self = new Producer()
    const [client, made, ignored] = kafka(config, 'producer')
    const compression = oneOf(made.compression, CODECS, 'compression')
    Object.assign(self, { ignored, transactional: made.transactional_id !== undefined,
      options: given({ acks: oneOf(made.acks, ACKS, 'acks'), compression }) })
    self.client = client.producer(given({ idempotent: made.idempotence, maxInFlightRequests: made.in_flight,
      metadataMaxAge: made.metadata_max_age_ms, transactionalId: made.transactional_id,
        transactionTimeout: made.transaction_timeout_ms,
      createPartitioner: kafkajs.Partitioners?.DefaultPartitioner }))
    await self.client.connect()
    return self.prepared()
  }

  async append (command) {
    const headers = {}
    for (const [name, value] of command.headers ?? []) headers[name] = name in headers ? [headers[name],
      decoded(value)].flat() : decoded(value) // lists: from 1.16
    const message = given({ key: decoded(command.key), value: decoded(command.value), headers,
      partition: command.partition ?? undefined,
      timestamp: command.timestamp_ms === undefined ||
        command.timestamp_ms === null ? undefined : String(command.timestamp_ms) })
    const said = await this.sender().send({ topic: command.topic, messages: [message],
      ...this.options })
    const one = said?.[0] ?? {}
    return { topic: command.topic, partition: one.partition ?? command.partition,
      offset: Number(one.baseOffset ?? one.offset ?? -1) }
  }

  beginning () { return this.client.transaction() }

  async send_offsets (command) {
    const consumer = Consumer.named.get(command.consumer)
    if (!consumer) throw new Refused('a consumer that is open', command.consumer)
    await this.begun().sendOffsets({ consumerGroupId: consumer.group, topics: byTopic(command.offsets) })
  }

  async close () { await this.client.disconnect() }
}

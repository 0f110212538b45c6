// The consumer.

import { Refused, encoded, given, happened, oneOf, sleep, taken } from './lines.mjs'
import { ASSIGNORS, ISOLATIONS, RESETS, kafka, errorOf } from './library.mjs'

export function byTopic (offsets) {
  const topics = {}
  for (const one of offsets) (topics[one.topic] ??= []).push({ partition: one.partition,
    offset: String(one.offset) })
  return Object.entries(topics).map(([topic, partitions]) => ({ topic, partitions }))
}

export class Consumer {
  static named = new Map()

  static async open (name, config) {
    const self = new Consumer()
    const [client, made, ignored] = kafka(config, 'consumer')
    const assigner = oneOf(made.assignor, ASSIGNORS, 'assignor')
    Object.assign(self, { name, ignored, made, group: made.group ?? `${name}-alone`, waiting: [],
      handed: new Map(), assigned: [],
      fromBeginning: oneOf(made.offset_reset, RESETS, 'offset_reset') ?? false, kafka: client })
    self.client = client.consumer(given({ groupId: self.group, partitionAssigners: assigner && [assigner],
      sessionTimeout: made.session_timeout_ms, heartbeatInterval: made.heartbeat_interval_ms,
        metadataMaxAge: made.metadata_max_age_ms,
      maxWaitTimeInMs: made.fetch_max_wait_ms, minBytes: made.fetch_min_bytes, maxBytes: made.fetch_max_bytes,
      readUncommitted: oneOf(made.isolation, ISOLATIONS, 'isolation') }))
    const { GROUP_JOIN, REBALANCING, CRASH } = self.client.events
    self.client.on(GROUP_JOIN, event => self.joined(event.payload))
    if (REBALANCING) self.client.on(REBALANCING, () => self.left())
    self.client.on(CRASH, ({ payload }) => happened('trouble', name,
      { error: { ...errorOf(payload.error), text: payload.error.message } }))
    await self.client.connect()
    Consumer.named.set(name, self)
    return self
  }

  joined (payload) {
    this.left()
    this.assigned = Object.entries(payload.memberAssignment ?? {}).flatMap(([topic,
      numbers]) => numbers.map(partition => ({ topic, partition })))
    happened('assigned', this.name, { partitions: this.assigned, generation: payload.generationId ?? null,
      member: payload.memberId })
  }

  left () {
    if (this.assigned.length) happened('revoked', this.name, { partitions: this.assigned })
    this.assigned = []
    this.handed.clear()
    this.drop(() => true)
  }

  /** Records that are waiting for a poll and must not be handed out any more. */
  drop (which) {
    for (const one of this.waiting.filter(which)) one.taken(false)
    this.waiting = this.waiting.filter(one => !which(one))
  }

  async subscribe (command) {
    for (const topic of command.topics) await this.client.subscribe({ topic,
      fromBeginning: this.fromBeginning })
    const { auto_commit: autoCommit, auto_commit_interval_ms: autoCommitInterval } = this.made
    await this.client.run(given({ autoCommit, autoCommitInterval, eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: 64,
      eachBatch: batch => this.each(batch) }))
  }

  /** Keeps the library's handler waiting until a poll takes the record, and its membership alive. */
  async each ({ batch, resolveOffset, heartbeat, isRunning, isStale }) {
    for (const message of batch.messages) {
      if (!isRunning() || isStale()) return
      let settled, failed
      const one = { topic: batch.topic, partition: batch.partition, message }
      const watched = new Promise(resolve => { one.taken = resolve }).then(yes => { settled = true
        return yes })
      this.waiting.push(one)
      while (!settled && !await Promise.race([watched, sleep(100)]) && !settled) {
        await heartbeat().catch(error => {
          failed = error
          this.drop(other => other === one) // the library hands out again what no poll has taken
        })
      }
      const yes = await watched
      if (yes) resolveOffset(message.offset)
      if (failed) throw failed
      if (!yes) return
      await heartbeat()
    }
  }

  async poll (command) {
    const more = () => {
      const one = this.waiting.shift()
      if (!one) return null
      one.taken(true)
      this.handed.set(`${one.topic}/${one.partition}`, { topic: one.topic, partition: one.partition,
        offset: Number(one.message.offset) + 1 })
      const headers = Object.entries(one.message.headers ?? {}).flatMap(([name,
        value]) => [value].flat().map(part => [name, encoded(part)]))
      return { topic: one.topic, partition: one.partition, offset: Number(one.message.offset),
        key: encoded(one.message.key),
        value: encoded(one.message.value), headers, timestamp_ms: Number(one.message.timestamp) }
    }
    more.empty = () => !this.waiting.length
    return { records: await taken(command, more) }
  }

  async pause () {
    this.client.pause(byTopic(this.assigned).map(({ topic }) => ({ topic })))
  }

  async resume () {
    this.client.resume(byTopic(this.assigned).map(({ topic }) => ({ topic })))
  }

  async seek (command) {
    this.client.seek({ topic: command.topic, partition: command.partition, offset: String(command.offset) })
    this.drop(one => one.topic === command.topic && one.partition === command.partition)
  }

  async commit (command) {
    if (command.mode !== 'sync') throw new Refused('the mode sync', command.mode)
    const offsets = command.offsets ?? [...this.handed.values()]
    if (offsets.length) await this.client.commitOffsets(offsets.map(one => ({ ...one,
      offset: String(one.offset) })))
    return { offsets }
  }

  async committed (command) {
    const admin = this.kafka.admin()
    await admin.connect()
    try {
      const offsets = []
      for (const { topic, partition } of command.partitions) {
        const said = await admin.fetchOffsets({ groupId: this.group, topic, topics: [topic] })
        const row = (said[0]?.partitions ?? said).find(one => one.partition === partition)
        offsets.push({ topic, partition, offset: Number(row?.offset ?? -1) })
      }
      return { offsets }
    } finally {
      await admin.disconnect()
    }
  }

  async close () {
    Consumer.named.delete(this.name)
    this.drop(() => true)
    await this.client.disconnect()
  }
}

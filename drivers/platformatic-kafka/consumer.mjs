// The consumer.

import * as library from '@platformatic/kafka'
import { Refused, encoded, given, happened, oneOf, taken } from './lines.mjs'
import { ASSIGNORS, ISOLATIONS, RESETS, base, errorOf } from './library.mjs'

export class Consumer {
  static atOnce = ['commit', 'subscribe'] // a group is joined for long, and can be left meanwhile

  static async open (name, config) {
    const [options, made, ignored] = base(config, 'consumer')
    const assigner = oneOf(made.assignor, ASSIGNORS, 'assignor')
    const self = new Consumer()
    Object.assign(self, { name, ignored, made, handed: new Map(), assigned: [], topics: new Set() })
    self.client = new library.Consumer(given({ ...options, groupId: made.group ?? `${name}-alone`,
      groupInstanceId: made.group_instance_id,
      sessionTimeout: made.session_timeout_ms, heartbeatInterval: made.heartbeat_interval_ms,
        rebalanceTimeout: made.max_poll_interval_ms,
      maxWaitTime: made.fetch_max_wait_ms, minBytes: made.fetch_min_bytes, maxBytes: made.fetch_max_bytes,
      isolationLevel: oneOf(made.isolation, ISOLATIONS, 'isolation'),
        partitionAssigner: assigner ?? undefined,
      protocols: made.assignor && [{ name: made.assignor, version: 1 }] }))
    self.client.on('consumer:group:join', payload => self.joined(payload))
    self.client.on('consumer:group:leave', () => self.left([]))
    // `error`: it gave up joining again, and sends no more heartbeats.
    for (const event of ['error', 'consumer:heartbeat:error', 'consumer:group:autocommit:error']) {
      self.client.on(event, payload => self.trouble(payload?.error ?? payload))
    }
    return self
  }

  trouble (error) {
    if (error) happened('trouble', this.name,
      { error: { ...errorOf(error), text: String(error.message).slice(0, 2000) } })
  }

  joined (payload) {
    const assigned = (payload.assignments ?? this.client.assignments ?? []).flatMap(({ topic, partitions }) =>
      partitions.map(partition => ({ topic, partition })))
    this.left(assigned)
    this.assigned = assigned
    happened('assigned', this.name, { partitions: assigned, generation: this.client.generationId,
      member: payload.memberId })
  }

  left (kept) {
    const key = one => `${one.topic}/${one.partition}`
    const still = new Set(kept.map(key))
    const gone = this.assigned.filter(one => !still.has(key(one)))
    if (gone.length) happened('revoked', this.name, { partitions: gone })
    for (const one of gone) this.handed.delete(key(one))
    this.assigned = kept
  }

  async subscribe (command) {
    const { auto_commit: automatic = true, auto_commit_interval_ms: interval } = this.made
    const fallbackMode = oneOf(this.made.offset_reset ?? 'latest', RESETS, 'offset_reset')
    // A poll that comes while the group is being joined has no records, and is no mistake.
    this.subscribed = true
    this.stream = await this.client.consume({ topics: command.topics, mode: 'committed', fallbackMode,
      autocommit: automatic && (interval ?? true) })
    this.stream.on('error', error => this.trouble(error))
    this.stream.on('readable', () => {}) // it fetches for a stream with a listener only
  }

  async poll (command) {
    if (!this.subscribed) throw new Error('not subscribed')
    const more = () => {
      const one = this.stream?.read()
      if (!one) return null
      const place = { topic: one.topic, partition: one.partition }
      this.handed.set(`${one.topic}/${one.partition}`, { ...place, offset: Number(one.offset) + 1,
        leaderEpoch: one.leaderEpoch ?? -1 })
      const headers = [...(one.headerEntries ?? one.headers?.entries() ?? [])].map(([name,
        value]) => [String(name), encoded(value)])
      return { ...place, offset: Number(one.offset), key: encoded(one.key), value: encoded(one.value),
        headers,
        timestamp_ms: Number(one.timestamp), leader_epoch: one.leaderEpoch ?? -1 }
    }
    more.empty = () => !this.stream?.readableLength
    return { records: await taken(command, more) }
  }

  async commit (command) {
    if (command.mode !== 'sync') throw new Refused('the mode sync', command.mode)
    const offsets = command.offsets ?? [...this.handed.values()]
    if (offsets.length) {
      await this.client.commit({ offsets: offsets.map(one => ({ leaderEpoch: -1, ...one,
        offset: BigInt(one.offset) })) })
    }
    return { offsets: offsets.map(({ topic, partition, offset }) => ({ topic, partition, offset })) }
  }

  async committed (command) {
    const topics = {}
    for (const one of command.partitions) (topics[one.topic] ??= []).push(one.partition)
    const asked = Object.entries(topics).map(([topic, partitions]) => ({ topic, partitions }))
    const said = await this.client.listCommittedOffsets({ topics: asked })
    return { offsets: asked.flatMap(({ topic, partitions }) => partitions.map((partition,
      place) => ({ topic, partition,
      offset: Number(said.get(topic)?.[place] ?? -1) }))) }
  }

  async close () {
    try {
      await this.stream?.close()
    } finally {
      await this.client.close(true) // whether or not the last commit went through: it would stay a member
    }
  }
}

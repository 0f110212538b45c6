// The admin client.

import { TOPIC, kafka, errorOf } from './library.mjs'

export class Admin {
  static async open (name, config) {
    const self = new Admin()
    const [client, , ignored] = kafka(config, 'admin')
    Object.assign(self, { ignored, client: client.admin() })
    await self.client.connect()
    return self
  }

  /** The library throws for all topics at once: each is asked for by itself. */
  async outcomes (topics, work) {
    const rows = []
    for (const name of topics) {
      rows.push(await work(name).then(fields => ({ name, error: null, ...fields }),
        error => ({ name, error: { fatal: false, ...errorOf(error), text: error.message } })))
    }
    return { topics: rows }
  }

  create_topics (command) {
    const byName = Object.fromEntries(command.topics.map(one => [one.name, one]))
    return this.outcomes(Object.keys(byName), async name => {
      const { partitions, replication_factor: replicationFactor, config } = byName[name]
      const configEntries = Object.entries(config ?? {}).map(([key, value]) => ({ name: key, value }))
      const topics = [{ topic: name, numPartitions: partitions, replicationFactor, configEntries }]
      if (await this.client.createTopics({ waitForLeaders: true, topics }) === false) {
        return { error: { name: 'createTopics answered false', code: null, text: 'the topic exists',
          fatal: false } }
      }
    })
  }

  delete_topics (command) {
    return this.outcomes(command.topics, async name => { await this.client.deleteTopics({ topics: [name] }) })
  }

  describe_topics (command) {
    return this.outcomes(command.topics, async name => {
      const { topics: [topic] } = await this.client.fetchTopicMetadata({ topics: [name] })
      const partitions = topic.partitions.map(one => ({ partition: one.partitionId, leader: one.leader,
        replicas: one.replicas, isr: one.isr }))
      return { partitions: partitions.sort((a, b) => a.partition - b.partition) }
    })
  }

  async describe_configs (command) {
    const { resources: [said] } = await this.client.describeConfigs({ includeSynonyms: false,
      resources: [{ type: TOPIC, name: command.topic }] })
    return { config: Object.fromEntries(said.configEntries.map(one => [one.configName, one.configValue])) }
  }

  async alter_configs (command) {
    const configEntries = Object.entries(command.config).map(([name, value]) => ({ name, value }))
    await this.client.alterConfigs({ validateOnly: false, resources: [{ type: TOPIC, name: command.topic,
      configEntries }] })
  }

  async close () { await this.client.disconnect() }
}

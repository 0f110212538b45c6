// The admin client.

import * as library from '@platformatic/kafka'
import { SET, TOPIC, base, errorOf } from './library.mjs'

export class Admin {
  static async open (name, config) {
    const [options, , ignored] = base(config, 'admin')
    const self = new Admin()
    Object.assign(self, { ignored, client: new library.Admin(options) })
    return self
  }

  /** The library throws for all topics at once: each is asked for by itself. */
  async outcomes (topics, work) {
    const rows = []
    for (const name of topics) {
      rows.push(await work(name).then(fields => ({ name, error: null, ...fields }),
        error => ({ name, error: { ...errorOf(error), text: error.message } })))
    }
    return { topics: rows }
  }

  create_topics (command) {
    const byName = Object.fromEntries(command.topics.map(one => [one.name, one]))
    return this.outcomes(Object.keys(byName), async name => {
      const { partitions, replication_factor: replicas, config } = byName[name]
      await this.client.createTopics({ topics: [name], partitions, replicas,
        configs: Object.entries(config ?? {}).map(([key, value]) => ({ name: key, value })) })
    })
  }

  delete_topics (command) {
    return this.outcomes(command.topics, async name => { await this.client.deleteTopics({ topics: [name] }) })
  }

  describe_topics (command) {
    return this.outcomes(command.topics, async name => {
      const said = await this.client.metadata({ topics: [name], forceUpdate: true })
      const partitions = said.topics.get(name).partitions.map(({ leader, replicas, isr },
        partition) => ({ partition, leader, replicas, isr }))
      return { partitions }
    })
  }

  async describe_configs (command) {
    const [said] = await this.client.describeConfigs({ resources: [{ resourceType: TOPIC,
      resourceName: command.topic }] })
    return { config: Object.fromEntries(said.configs.map(one => [one.name, one.value])) }
  }

  async alter_configs (command) {
    const configs = Object.entries(command.config).map(([name, value]) => ({ name, value,
      configOperation: SET }))
    await this.client.incrementalAlterConfigs({ resources: [{ resourceType: TOPIC,
      resourceName: command.topic, configs }] })
  }

  async close () { await this.client.close() }
}

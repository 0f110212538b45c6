// The driver of kafkajs.

import { COMMON, CONSUMER, PRODUCER, serve } from './lines.mjs'
import { Admin } from './admin.mjs'
import { Consumer } from './consumer.mjs'
import { ASSIGNORS, CODECS, KNOWN, errorOf, require } from './library.mjs'
import { Producer } from './producer.mjs'

serve({ producer: Producer, consumer: Consumer, admin: Admin }, errorOf, {
  driver: 'kafkajs', library: 'kafkajs', version: require('kafkajs/package.json').version,
    codecs: Object.keys(CODECS), acks: [0, 1, -1],
  idempotence: true, transactions: true, assignors: Object.keys(ASSIGNORS), commit_modes: ['sync'],
  config: [...new Set(Object.values(KNOWN).flat())].filter(name => [...COMMON, ...PRODUCER,
    ...CONSUMER].includes(name))
})

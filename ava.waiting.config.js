import base from './ava.config.js'

const longest = (file) => Number(file.includes('stopped-agent'))

/** What takes minutes though it does next to nothing, so that others can run beside it. The longest begins first. */
export default {
  ...base,
  files: ['stopped-agent', 'one-identity', 'server-away'].map((name) => `dist/test/faults/long/${name}.test.js`),
  timeout: '10m',
  concurrency: 2,
  sortTestFiles: (one, other) => longest(other) - longest(one) || (one < other ? -1 : 1),
}

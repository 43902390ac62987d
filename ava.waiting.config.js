import base from './ava.config.js'

/** In the order in which they begin: the longest first, and last the one that needs the console, which `npm test` builds anew. */
const names = ['stopped-agent', 'one-identity', 'server-away', 'terminal-cut', 'browser-cut']
const placeOf = (file) => names.findIndex((name) => file.includes(name))

/** What takes minutes though it does next to nothing, so that others can run beside it. */
export default {
  ...base,
  files: names.map((name) => `dist/test/faults/long/${name}.test.js`),
  timeout: '10m',
  concurrency: 2,
  sortTestFiles: (one, other) => placeOf(one) - placeOf(other),
}

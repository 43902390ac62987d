import base from './ava.config.js'

/** In the order in which they begin: the longest first. */
const names = ['stopped-agent', 'random-kills', 'one-identity', 'browser-cut', 'server-away', 'store-away', 'cut-off-server', 'differing-clocks', 'stopped-server', 'unlinked-release', 'terminal-cut']
const placeOf = (file) => names.findIndex((name) => file.includes(name))

/** What takes minutes though it does little, so that others can run beside it. */
export default {
  ...base,
  files: names.map((name) => `dist/test/faults/long/${name}.test.js`),
  timeout: '11m',
  concurrency: 2,
  sortTestFiles: (one, other) => placeOf(one) - placeOf(other),
}

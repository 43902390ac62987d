import base from './ava.config.js'
import waiting from './ava.waiting.config.js'

/** What takes longest begins first; before it the one that waits for a minute. */
const first = ['half-open', 'flood', 'server-windows-shared', 'server-windows', 'agent-windows', 'thousand-agents']
const placeOf = (file) => {
  const place = first.findIndex((name) => file.endsWith(`/${name}.test.js`))
  return place === -1 ? first.length : place
}

/** What takes longer than anyone waits for at each change: run by `npm run test:faults`. */
export default {
  ...base,
  files: ['dist/test/faults/long/**/*.test.js', ...waiting.files.map((file) => `!${file}`)],
  timeout: '11m',
  concurrency: 2,
  sortTestFiles: (one, other) => placeOf(one) - placeOf(other) || (one < other ? -1 : 1),
}

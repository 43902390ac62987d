import base from './ava.config.js'
import waiting from './ava.waiting.config.js'

const waits = (file) => Number(file.includes('half-open'))

/** What takes longer than anyone waits for at each change: run by `npm run test:faults`. */
export default {
  ...base,
  files: ['dist/test/faults/long/**/*.test.js', ...waiting.files.map((file) => `!${file}`)],
  timeout: '10m',
  // One waits for a minute, though it is not to be hurried by all that `npm test` does: it begins first, not last.
  sortTestFiles: (one, other) => waits(other) - waits(one) || (one < other ? -1 : 1),
}

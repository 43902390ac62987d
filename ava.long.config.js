import base from './ava.config.js'
import waiting from './ava.waiting.config.js'

/** What takes longer than anyone waits for at each change: run by `npm run test:faults`. */
export default {
  ...base,
  files: ['dist/test/faults/long/**/*.test.js', ...waiting.files.map((file) => `!${file}`)],
  timeout: '10m',
}

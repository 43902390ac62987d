import base from './ava.config.js'

const waits = (file) => file.includes('stopped-agent')

/** What takes longer than anyone waits for at each change: run by `npm run test:faults`. */
export default {
  ...base,
  files: ['dist/test/faults/long/**/*.test.js'],
  timeout: '10m',
  // One of them only waits, for minutes: it begins first, and two others run beside it.
  concurrency: 3,
  sortTestFiles: (one, other) => Number(waits(other)) - Number(waits(one)) || (one < other ? -1 : 1),
}

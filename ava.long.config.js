import base from './ava.config.js'

/** What takes longer than anyone waits for at each change: run by `npm run test:faults`. */
export default { ...base, files: ['dist/test/faults/long/**/*.test.js'], timeout: '10m', concurrency: 2 }

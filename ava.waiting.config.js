import base from './ava.config.js'

/** What takes minutes though it does next to nothing, so that others can run beside it. */
export default { ...base, files: ['dist/test/faults/long/stopped-agent.test.js'], timeout: '10m' }

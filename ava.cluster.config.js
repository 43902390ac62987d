import base from './ava.config.js'

/** Three servers on one PostgreSQL, which are killed: run by `npm run test:cluster`. Takes `postgresql` and `haproxy` of Debian. */
export default { ...base, files: ['dist/test/cluster/**/*.test.js'], timeout: '45m', concurrency: 1, serial: true }

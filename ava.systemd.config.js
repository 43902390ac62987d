import base from './ava.config.js'

/** What needs a machine with systemd as PID 1: `.ci/systemd-root DIR` makes one, and RSM_SYSTEMD_ROOT=DIR names it. */
export default { ...base, files: ['dist/test/systemd/**/*.test.js'], timeout: '5m' }

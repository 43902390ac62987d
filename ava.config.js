export default {
  files: ['dist/test/**/*.test.js', '!dist/test/faults/long/**'],
  timeout: '120s',
  environmentVariables: { NO_COLOR: '1', RSM_URL: '', RSM_TOKEN: '' },
}

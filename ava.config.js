export default {
  files: ['dist/test/**/*.test.js'],
  timeout: '120s',
  environmentVariables: { NO_COLOR: '1', RSM_URL: '', RSM_TOKEN: '' },
}

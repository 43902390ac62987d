#!/usr/bin/env node
// Runs the sources as run.js runs a build: compiles first, and does not start if tsc fails.
const { spawnSync } = require('node:child_process')

const at = (path) => `${__dirname}/${path}`
const build = spawnSync(
  process.execPath,
  [at('../node_modules/typescript/bin/tsc'), '-p', at('../tsconfig.json')],
  {
    stdio: ['ignore', 2, 2],
  },
)
if (build.status === 0) require('./run.js')
else process.exitCode = 6

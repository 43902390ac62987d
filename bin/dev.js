#!/usr/bin/env node
// As run.js, from the sources: what tsc refuses does not start.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))
const build = spawnSync(
  process.execPath,
  [at('../node_modules/typescript/bin/tsc'), '-p', at('../tsconfig.json')],
  {
    stdio: ['ignore', 2, 2],
  },
)
if (build.status === 0) await import('./run.js')
else process.exitCode = 6

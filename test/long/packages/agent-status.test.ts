import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { openProgram } from '../../helpers/programs/open-program.ts'

const asRoot = process.getuid?.() === 0 ? test : test.skip // Only root may become another user.

/** Packages that a command loads from node_modules. */
const commandPackages = ['@oclif/core', 'cli-table3', 'get-east-asian-width', 'ora', 'typebox']

asRoot('A18 agent status names the user to run it as if the agent belongs to another user', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const bin = join(openProgram(t, commandPackages), 'bin/run.js')
  const words = ['agent', 'status', '--data-dir', dataDir]
  const become = ['--reuid=nobody', '--clear-groups', '--', process.execPath, bin, ...words]
  writeFileSync(join(dataDir, 'status.json'), '{}')
  const { status, stderr } = spawnSync('setpriv', become, { encoding: 'utf8', cwd: '/' })
  t.is(status, 3, stderr)
  t.is(stderr, `rsm: ${dataDir} belongs to root\n     ask as that user: sudo rsm ${words.join(' ')}\n`)
})

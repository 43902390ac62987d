import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { ownCommand } from '../../../src/cli/command/own-command.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

test('where rsm is on the PATH, rsm is what to type', (t) => {
  const directory = temporaryDirectory(t)
  writeFileSync(join(directory, 'rsm'), '', { mode: 0o755 })
  t.is(ownCommand('/srv/rsm/bin/run.js', `/nowhere:${directory}`, '/srv/rsm'), 'rsm')
})

test('a directory that npm put on the PATH is not there in another terminal', (t) => {
  const directory = join(temporaryDirectory(t), 'node_modules/.bin')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'rsm'), '', { mode: 0o755 })
  t.is(ownCommand('/srv/rsm/bin/run.js', directory, '/srv/rsm'), 'node bin/run.js')
})

test('else node and the script: relative within the working directory, whole elsewhere, quoted where it must be', (t) => {
  t.is(ownCommand('/srv/rsm/bin/run.js', '', '/srv'), 'node rsm/bin/run.js')
  t.is(ownCommand('/srv/rsm/bin/run.js', '', '/home/ann'), 'node /srv/rsm/bin/run.js')
  t.is(ownCommand("/srv/ann's rsm/run.js", '', '/home'), "node '/srv/ann'\\''s rsm/run.js'")
})

test('a single executable is named as a shell finds it', (t) => {
  t.is(ownCommand('/srv/rsm-linux-x64', '', '/srv', true), './rsm-linux-x64')
  t.is(ownCommand('/srv/rsm-linux-x64', '', '/home/ann', true), '/srv/rsm-linux-x64')
})

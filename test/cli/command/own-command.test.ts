import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { ownCommand } from '../../../src/cli/command/own-command.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

test('the own command is `rsm` if that is on the PATH', (t) => {
  const directory = temporaryDirectory(t)
  writeFileSync(join(directory, 'rsm'), '', { mode: 0o755 })
  t.is(ownCommand('/srv/rsm/bin/run.js', `/nowhere:${directory}`, '/srv/rsm'), 'rsm')
})

test('a directory that npm added to the PATH does not count, because other terminals lack it', (t) => {
  const directory = join(temporaryDirectory(t), 'node_modules/.bin')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'rsm'), '', { mode: 0o755 })
  t.is(ownCommand('/srv/rsm/bin/run.js', directory, '/srv/rsm'), 'node bin/run.js')
})

test('otherwise the own command is node and the script: relative within the working directory, else absolute, quoted if needed', (t) => {
  t.is(ownCommand('/srv/rsm/bin/run.js', '', '/srv'), 'node rsm/bin/run.js')
  t.is(ownCommand('/srv/rsm/bin/run.js', '', '/home/ann'), 'node /srv/rsm/bin/run.js')
  t.is(ownCommand("/srv/ann's rsm/run.js", '', '/home'), "node '/srv/ann'\\''s rsm/run.js'")
})

test('a single executable is named by a path that a shell finds', (t) => {
  t.is(ownCommand('/srv/rsm-linux-x64', '', '/srv', true), './rsm-linux-x64')
  t.is(ownCommand('/srv/rsm-linux-x64', '', '/home/ann', true), '/srv/rsm-linux-x64')
})

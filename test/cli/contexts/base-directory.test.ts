import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import test from 'ava'
import { Contexts } from '../../../src/cli/contexts/contexts.ts'
import { baseDirectory } from '../../../src/cli/contexts/private-files.ts'
import { cleanEnv, temporaryDirectory } from '../../fixtures/rsm.ts'

test('a base directory is the value of its variable if that is an absolute path', (t) => {
  t.is(baseDirectory('STATE', { XDG_STATE_HOME: '/var/tmp/state' }), '/var/tmp/state')
  for (const env of [{}, { XDG_STATE_HOME: '' }, { XDG_STATE_HOME: 'state' }, { XDG_STATE_HOME: '~/state' }])
    t.is(baseDirectory('STATE', env), join(homedir(), '.local', 'state'))
})

test('relative base directories create nothing in the working directory', (t) => {
  const home = temporaryDirectory(t)
  const here = join(home, 'here')
  mkdirSync(here)
  new Contexts({ XDG_CONFIG_HOME: join(home, '.config') }).save('prod', { url: 'https://rsm.example' }, 'x')
  const ran = spawnSync(process.execPath, [resolve('bin/run.js'), 'context', 'use', 'prod'], {
    cwd: here,
    env: cleanEnv(home, { XDG_CONFIG_HOME: 'config', XDG_STATE_HOME: 'state', XDG_CACHE_HOME: 'cache' }),
    encoding: 'utf8',
  })
  t.is(ran.status, 0, ran.stderr)
  t.deepEqual(readdirSync(here), [])
})

import { spawnSync } from 'node:child_process'
import test from 'ava'

test('the packages of this machine are made, looked into, and tried where nothing else is', (t) => {
  t.timeout(590_000)
  const { status, stdout, stderr } = spawnSync('bash', ['.ci/test-packages'], { encoding: 'utf8' })
  t.log(stdout)
  t.is(status, 0, stdout + stderr)
})

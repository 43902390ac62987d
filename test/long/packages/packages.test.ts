import { spawnSync } from 'node:child_process'
import test from 'ava'

test('the packages for this machine are built, inspected, and tried on a bare system', (t) => {
  t.timeout(590_000)
  const { status, stdout, stderr } = spawnSync('bash', ['.ci/test-packages'], { encoding: 'utf8' })
  t.log(stdout)
  t.is(status, 0, stdout + stderr)
})

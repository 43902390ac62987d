import { tmpdir } from 'node:os'
import test from 'ava'
import { healthOf } from '../../../src/agent/reports/metrics.ts'

const disk = (device: string, mountPoint: string, isReadOnly: boolean) => ({
  device,
  mountPoint,
  type: 'ext4',
  isNoexec: false,
  isReadOnly,
})

test('a disk that becomes read-only is reported once, one that always was is not', async (t) => {
  let disks = [disk('a', '/', true), disk('b', '/srv', false), disk('b', '/srv/www', false)]
  const health = healthOf(tmpdir(), () => disks)
  t.deepEqual(await health(), { status: 'HEALTHY', reason: null })
  disks = [disk('a', '/', true), disk('b', '/srv', true), disk('b', '/srv/www', true)]
  t.deepEqual(await health(), { status: 'DEGRADED', reason: '/srv has become read-only' })
  disks = [disk('a', '/', true)]
  t.like(await health(), { status: 'HEALTHY' })
  disks = [disk('b', '/media', true)]
  t.like(await health(), { status: 'HEALTHY' })
})

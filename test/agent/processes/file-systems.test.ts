import { spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { allowsExec, mounts } from '../../../src/agent/processes/file-systems.ts'
import { lackOfPlace } from '../../../src/agent/terminals/native.ts'
import { asRoot } from '../../helpers/agents/modes.ts'
import { mountSmallDisk } from '../../helpers/faults/small-disk.ts'

test('a file system counts as read-only by its own options, not by those of one mount', (t) => {
  const found = mounts(
    String.raw`22 1 8:1 / / rw,relatime shared:1 master:2 - ext4 /dev/sda1 rw,errors=remount-ro
30 22 7:0 / /snap/a\040b ro,nodev,relatime - squashfs /dev/loop0 ro
31 22 8:1 /srv /host ro,noexec - ext4 /dev/sda1 rw,errors=remount-ro
32 22 8:2 / /srv rw,noatime - ext4 /dev/sdb1 rw,emergency_ro
33 22 0:40 / /merged ro,relatime shared:5 - overlay overlay ro,lowerdir=/a:/b
`,
  )
  t.deepEqual(
    found.map(({ mountPoint, device, type, isReadOnly, isNoexec }) => [
      mountPoint,
      `${type} ${device}`,
      isReadOnly,
      isNoexec,
    ]),
    [
      ['/', 'ext4 /dev/sda1', false, false],
      ['/snap/a b', 'squashfs /dev/loop0', true, false],
      ['/host', 'ext4 /dev/sda1', false, true],
      ['/srv', 'ext4 /dev/sdb1', true, false],
      ['/merged', 'overlay overlay', true, false],
    ],
  )
})

asRoot('a directory that is mounted noexec is refused for programs, by any path', (t) => {
  const disk = mountSmallDisk(256 * 1024, 'noexec')
  if (disk === null) return void t.pass('nothing may be mounted here')
  t.teardown(() => disk.unmount())
  const [below, alias] = [join(disk.directory, 'below'), join(disk.directory, 'alias')]
  mkdirSync(below)
  symlinkSync('/', alias)
  t.deepEqual([disk.directory, below, alias, '/'].map(allowsExec), [false, false, true, true])
  const lack = lackOfPlace([below, '/nosuch'], true)
  t.is(
    lack,
    `terminals need a directory that is writable and not mounted noexec, unlike ${below}, /nosuch: remount one with exec and restart the agent`,
  )
  t.is(lackOfPlace([below, '/'], true), null)
  spawnSync('mount', ['-o', 'remount,exec', disk.directory])
  t.is(lackOfPlace([below, '/nosuch'], true), null)
})

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { setImmediate as breathe } from 'node:timers/promises'
import test from 'ava'
import { systemClock } from '../../../src/agent/clock.ts'
import { inodesUsed, meter } from '../../../src/agent/reports/metrics.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { asRoot } from '../../helpers/agents/modes.ts'

test('a disk that does not answer is omitted from the metrics and not read again until it has answered', async (t) => {
  const space = { blocks: 100, bfree: 50, bavail: 50, bsize: 1024 ** 2 }
  const asked: string[] = []
  let answer: ((answered: typeof space) => void) | undefined
  const warned: unknown[] = []
  const measure = meter(
    systemClock,
    (level, _message, fields) => warned.push([level, fields]),
    async (path) => {
      if (path !== '/') throw new Error('not a disk of this test')
      asked.push(path)
      if (asked.length > 1) return space
      return new Promise((resolve) => {
        answer = resolve
      })
    },
    50,
  )
  for (let time = 0; time < 2; time += 1) {
    const { disk, memory } = await measure()
    t.deepEqual(disk, [])
    t.true(memory.totalMB > 0)
  }
  t.deepEqual(asked, ['/'])
  t.deepEqual(warned, [['WARN', { mountPoint: '/' }]])
  answer?.(space)
  await breathe()
  const { disk } = await measure()
  t.deepEqual(disk, [{ mountPoint: '/', totalGB: 0.1, usedGB: 0.05, usagePercent: 50 }])
})

test('inodes are reported for file systems with a fixed number of them', (t) => {
  t.is(inodesUsed({ files: 72, ffree: 0 }, 'ext4'), 100)
  t.is(inodesUsed({ files: 1000, ffree: 25 }, 'xfs'), 97.5)
  t.is(inodesUsed({ files: 0, ffree: 0 }, 'btrfs'), null)
  t.is(inodesUsed({ files: 9, ffree: 0 }, 'fuseblk'), null)
  t.is(inodesUsed({}, 'ext4'), null)
})

/** Makes a file system in a file, fills it at `$1` with the script `$3`, and mounts it with the options `$2`. */
const image = `
  truncate -s 4M "$1.img" && mkdir "$1" && mkfs.ext4 -q -F -N 64 "$1.img" && mount -o loop "$1.img" "$1" || exit 1
  eval "$3"
  umount "$1" && mount -o "$2" "$1.img" "$1"`

asRoot('metrics omit a full read-only image, and report a disk without free inodes', async (t) => {
  const directory = await temporaryDirectory(t)
  const mounted = (name: string, options: string, fill: string) => {
    const mountPoint = join(directory, name)
    const { status } = spawnSync('sh', ['-c', image, 'sh', mountPoint, options, fill])
    if (status === 0) t.teardown(() => void spawnSync('umount', [mountPoint]))
    return status === 0
  }
  const isMounted = mounted('full', 'ro,loop', 'head -c 8M /dev/zero > "$1/f"')
  if (!isMounted) return void t.pass('nothing may be mounted here')
  t.true(mounted('crowded', 'loop', 'for name in $(seq 99); do touch "$1/$name" || break; done'))
  const { disk } = await meter(systemClock, () => {})()
  const found = disk.filter(({ mountPoint }) => mountPoint.startsWith(directory))
  t.deepEqual(
    found.map(({ mountPoint, inodesPercent }) => [mountPoint, inodesPercent]),
    [[join(directory, 'crowded'), 100]],
  )
  t.true((found[0]?.usagePercent ?? 100) < 50)
})

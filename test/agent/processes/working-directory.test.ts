import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as breathe } from 'node:timers/promises'
import test from 'ava'
import { existing, Inquiry, workDirFault } from '../../../src/agent/processes/file-systems.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'

test('a directory that does not answer is refused, at once the next time, without delaying others', async (t) => {
  const base = await temporaryDirectory(t)
  const dead = join(base, 'dead')
  const asked: string[] = []
  let answer = () => {}
  const directories = new Inquiry(
    async (path) => {
      asked.push(path)
      if (path === dead && asked.length === 1)
        await new Promise<void>((resolve) => {
          answer = resolve
        })
      return stat(base)
    },
    2,
    50,
  )
  const silence = `the working directory ${dead}: does not answer`
  t.deepEqual(
    await Promise.all([
      workDirFault(dead, directories),
      workDirFault(base, directories),
      existing(dead, directories),
      existing(base, directories),
      workDirFault(dead, directories),
    ]),
    [silence, null, '/', base, silence],
  )
  t.deepEqual(asked, [dead, base, base])
  answer()
  while ((await workDirFault(dead, directories)) !== null) await breathe()
  t.deepEqual(asked, [dead, base, base, dead])
  t.is(await existing(dead, directories), dead)
})

test('a file is refused as a working directory, and a missing directory is reported as missing', async (t) => {
  const base = await temporaryDirectory(t)
  t.is(await workDirFault(base), null)
  t.is(await workDirFault(process.execPath), `the working directory ${process.execPath} is not a directory`)
  t.is(await workDirFault(join(base, 'none')), `the working directory ${base}/none: does not exist`)
  t.is(await existing(join(base, 'none')), '/')
})

import test, { type ExecutionContext } from 'ava'
import { Batches } from '../../../../src/server/services/logs/readers.ts'
import type { Outputs, ReadQuery } from '../../../../src/server/storage/ports/outputs.ts'
import { startInsides } from '../../../helpers/servers/services.ts'

const taskId = 'a'.repeat(22)
const nameOf = (hostId: number) => `web${hostId}`

/** Batches of a log on disk; reads are counted and can be made to fail. */
async function batchesOf(t: ExecutionContext) {
  const { outputs } = (await startInsides(t)).context
  const disk = { reads: 0, fails: false, followers: 2 }
  const readLines = async (...asked: [string, ReadQuery]): ReturnType<Outputs['readLines']> => {
    disk.reads++
    if (disk.fails) throw new Error('the disk fails')
    return outputs.readLines(...asked)
  }
  let sequence = 0
  const write = (data: string, hostId = 1) => {
    const timestamp = '2026-06-01T00:00:00.000Z'
    return outputs.append(taskId, { hostId, stream: 'stdout', sequence: sequence++, timestamp, data })
  }
  return { batches: new Batches({ readLines }, () => disk.followers > 1), disk, write }
}

test('followers at one position share one read and one buffer, while others read their own', async (t) => {
  const { batches, disk, write } = await batchesOf(t)
  await write('first')
  await write('second', 2)
  const all = await Promise.all(
    Array.from({ length: 100 }, () => batches.after(taskId, { after: 0 }, nameOf)),
  )
  t.is(disk.reads, 1)
  t.is(new Set(all.map(({ events }) => events)).size, 1)
  t.regex(String(all[0]?.events), /"hostname":"web1".*"first"[^]*"hostname":"web2".*"second"/)
  disk.followers = 1
  await batches.after(taskId, { after: 0 }, nameOf)
  t.is(disk.reads, 2, 'nothing is cached for a single follower')
  disk.followers = 2
  const ofOne = await batches.after(taskId, { after: 0, hostId: 2 }, nameOf)
  t.notRegex(String(ofOne.events), /first/)
  t.is((await batches.after(taskId, { after: 0, stream: 'stderr' }, nameOf)).events, null)
  t.is((await batches.after('b'.repeat(22), { after: 0 }, nameOf)).events, null)
})

test('the end of a log is read again for each follower', async (t) => {
  const { batches, write } = await batchesOf(t)
  await write('first')
  const { next } = await batches.after(taskId, { after: 0 }, nameOf)
  const early = batches.after(taskId, { after: next }, nameOf)
  await write('second')
  const late = batches.after(taskId, { after: next }, nameOf)
  t.is((await early).next, next)
  t.regex(String((await late).events), /second/)
  t.regex(String((await batches.after(taskId, { after: next }, nameOf)).events), /second/)
})

test('a failed read is repeated, and the cache is bounded', async (t) => {
  const { batches, disk, write } = await batchesOf(t)
  const places = [0]
  for (let n = 0; n < 60; n++) {
    await write(`line ${n}`)
    places.push((await batches.after(taskId, { after: places[n] ?? 0 }, nameOf)).next)
  }
  disk.reads = 0
  await batches.after(taskId, { after: places[59] ?? 0 }, nameOf)
  t.is(disk.reads, 0)
  disk.fails = true
  await t.throwsAsync(batches.after(taskId, { after: 0 }, nameOf), { message: 'the disk fails' })
  disk.fails = false
  t.regex(String((await batches.after(taskId, { after: 0 }, nameOf)).events), /line 0/)
  t.is(disk.reads, 2)
})

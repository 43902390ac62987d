import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import {
  openFileRecordings,
  sumsSuffix,
  verifyRecording,
} from '../../../../src/server/storage/files/recordings.ts'
import { recordingsContract } from '../../../contracts/recordings.ts'
import { temporaryDirectory } from '../../../fixtures/rsm.ts'

recordingsContract(test, async (t) => openFileRecordings(temporaryDirectory(t)))

test('A06 any flipped bit in a recording or its checksum file is reported with file and position', async (t) => {
  const directory = temporaryDirectory(t)
  const path = join(directory, 's1.cast')
  const recordings = await openFileRecordings(directory)
  const recording = await recordings.create('s1', Buffer.from('{"version":2}\n'), (error) =>
    t.fail(String(error)),
  )
  for (const line of ['[0.1, "o", "a"]\n', '[0.2, "o", "bä"]\n']) await recording.append([Buffer.from(line)])
  await recording.end()
  const { size } = await stat(path)
  await verifyRecording(path, size, size)
  for (const file of [path, path + sumsSuffix]) {
    const whole = await readFile(file)
    for (let bit = 0; bit < whole.length * 8; bit++) {
      const flipped = Buffer.from(whole)
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      await writeFile(file, flipped, { flag: 'r+' })
      const told = await verifyRecording(path, size, size).then(
        () => null,
        (error: Error) => error.message,
      )
      const isTold = told?.startsWith(`the recording is damaged: ${path}`) === true
      // An unreadable entry of the checksum file says nothing about the recording, so it is not reported.
      if (!isTold && (told !== null || file === path))
        return t.fail(`bit ${bit & 7} of byte ${bit >> 3} of ${file}: ${told}`)
    }
    await writeFile(file, whole)
  }
  await t.throwsAsync(verifyRecording(path, size - 1, size), { code: 'gone', message: /ends at byte/ })
  await rm(path + sumsSuffix)
  await verifyRecording(path, size, size)
  t.true(true, 'a recording of 0.1.0 has no checks')
})

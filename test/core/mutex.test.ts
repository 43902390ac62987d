import test from 'ava'
import { Mutex, Semaphore } from '../../src/core/mutex.ts'

function pending(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

test('a mutex runs one job at a time in the order of the calls', async (t) => {
  const mutex = new Mutex()
  const events: string[] = []
  const works = ['first', 'second', 'third'].map((name) => ({ name, ...pending() }))
  const done = works.map(({ name, promise }) =>
    mutex.run(async () => {
      events.push(`${name} begins`)
      await promise
      events.push(`${name} ends`)
      return name
    }),
  )
  t.false(mutex.isFree)
  t.is(mutex.queueLength, 2)
  for (const { resolve } of works.toReversed()) resolve()
  t.deepEqual(await Promise.all(done), ['first', 'second', 'third'])
  const inOrder = works.flatMap(({ name }) => [`${name} begins`, `${name} ends`])
  t.deepEqual(events, inOrder)
  t.true(mutex.isFree)
})

test('a failure reaches its caller and does not stop the next job', async (t) => {
  const mutex = new Mutex()
  const failing = mutex.run(() => Promise.reject(new Error('refused')))
  const throwing = mutex.run(() => {
    throw new Error('thrown')
  })
  const next = mutex.run(() => 'done')
  await t.throwsAsync(failing, { message: 'refused' })
  await t.throwsAsync(throwing, { message: 'thrown' })
  t.is(await next, 'done')
})

test('a mutex is idle once all earlier jobs have ended', async (t) => {
  const mutex = new Mutex()
  await mutex.idle()
  const { promise, resolve } = pending()
  let isDone = false
  const work = mutex.run(async () => {
    await promise
    isDone = true
  })
  const idle = mutex.idle().then(() => t.true(isDone))
  resolve()
  await Promise.all([work, idle])
})

test('a semaphore has as many concurrent holders as permits', async (t) => {
  const semaphore = new Semaphore(2)
  const first = await semaphore.acquire()
  const second = semaphore.tryAcquire()
  t.is(semaphore.tryAcquire(), null)
  const third = semaphore.acquire()
  first()
  // A second release of the same permit has no effect.
  first()
  const release = await third
  t.false(semaphore.isFree)
  second?.()
  release()
  t.true(semaphore.isFree)
})

test('an aborted caller leaves the queue and never runs', async (t) => {
  const mutex = new Mutex()
  const release = await mutex.acquire()
  const began: string[] = []
  const work = (name: string) => () => void began.push(name)
  const leaving = new AbortController()
  const second = mutex.run(work('second'), leaving.signal)
  const third = mutex.run(work('third'))
  leaving.abort()
  t.is(mutex.queueLength, 1)
  await t.throwsAsync(second, { any: true, name: 'AbortError' })
  release()
  await third
  t.deepEqual(began, ['third'])
  await t.throwsAsync(mutex.run(work('late'), leaving.signal), { any: true, name: 'AbortError' })
})

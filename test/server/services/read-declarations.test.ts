import test from 'ava'
import { startInsides } from '../../helpers/servers/services.ts'

test('A08 the declarations of a script are parsed once, however often it is listed', async (t) => {
  const { services, context } = await startInsides(t)
  const { id } = await services.scripts.create({ name: 'deploy', type: 'BASH', content: 'true' })
  let read = 0
  await context.store.transact(async (tx) => {
    const script = await tx.get('scripts', id)
    if (!script) return
    tx.put('scripts', {
      ...script,
      get content() {
        read++
        return '# rsm: param VERSION\n'
      },
    })
  })
  read = 0
  const { content: first } = await services.scripts.list({ name: 'deploy' })
  t.deepEqual(
    first[0]?.params?.map(({ name }) => name),
    ['VERSION'],
  )
  const once = read
  for (let time = 1; time <= 5; time++) await services.scripts.list({ name: 'deploy' })
  t.is(read - once, 5 * (once - 1), 'only the copy for the answer reads the text')
})

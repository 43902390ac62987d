import test from 'ava'
import { compareParams, declaredFaults } from '../../../src/core/script/declared-params.ts'

const none = { required: false, secret: false, default: null, pattern: null, description: '' }

test('A15 of many undeclared params only the first are compared with those that are declared, and all are named', (t) => {
  let read = 0
  const declared = Array.from({ length: 200 }, (_, at) => ({
    ...none,
    name: {
      toString: () => '',
      toLowerCase() {
        read++
        return `DECLARED_${at}`.toLowerCase()
      },
    } as unknown as string,
  }))
  const params = new Map(Array.from({ length: 1_000 }, (_, at) => [`DECLARE_${at}`, 'x']))
  const found = compareParams(declared, params, new Map(), () => true)
  const faults = declaredFaults('deploy', declared, new Map(), found)
  t.is(faults.length, 1_000)
  t.is(read, 10 * 200)
  t.deepEqual(faults[10], { field: 'params.DECLARE_10', message: 'is not a param of deploy' })
})

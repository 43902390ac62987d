import test from 'ava'
import { createHints } from '../../../src/server/embedded/hints.ts'
import { hintsContract } from '../../contracts/hints.ts'

hintsContract(test, async () => createHints())

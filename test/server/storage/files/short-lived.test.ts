import test from 'ava'
import { createShortLived } from '../../../../src/server/storage/files/short-lived.ts'
import { shortLivedContract } from '../../../contracts/short-lived.ts'

shortLivedContract(test, async (clock) => createShortLived(clock))

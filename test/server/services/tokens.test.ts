import test from 'ava'
import { tokensContract } from '../../contracts/tokens.ts'
import { servicesOnStore } from '../../helpers/services.ts'

tokensContract(test, 'on the store,', servicesOnStore)

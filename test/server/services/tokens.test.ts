import test from 'ava'
import { tokensContract } from '../../contracts/tokens.ts'
import { servicesOnStore } from '../../helpers/servers/services.ts'

tokensContract(test, 'on the store,', servicesOnStore)

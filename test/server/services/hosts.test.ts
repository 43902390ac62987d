import test from 'ava'
import { hostsContract } from '../../contracts/hosts.ts'
import { servicesOnStore } from '../../helpers/services.ts'

hostsContract(test, 'on the store,', servicesOnStore)

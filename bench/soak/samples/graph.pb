
9
aOp"/device:CPU:0*
dtype0*
_class

loc:@c

bOpaa:2a*
dtype0
!
cOpb:0^a^b*
dtype0